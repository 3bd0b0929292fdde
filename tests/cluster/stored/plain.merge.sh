#!/bin/bash
# One file of all rows, when the tasks are over. It may also be typed, at any time.
#SBATCH --job-name=r-merge
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --chdir=/data/runs/r
#SBATCH --output=/data/runs/r/slurm/%j.log
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --kill-on-invalid-dep=yes

set -eu

/opt/venv/bin/python -m vidpipe merge /data/runs/r -o /data/runs/r/results.parquet
