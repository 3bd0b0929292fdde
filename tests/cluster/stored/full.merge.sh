#!/bin/bash
# One file of all rows, and its scores, when the tasks are over. It may also be typed, at any time.
#SBATCH --job-name=r-merge
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --time=4:00:00
#SBATCH --partition=gpu
#SBATCH --chdir="/data/50% of it/r"
#SBATCH --output="/data/50%% of it/r/slurm"/%j.log
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --kill-on-invalid-dep=yes
#SBATCH --account=video

set -eu

/opt/venv/bin/python -m vidpipe merge '/data/50% of it/r' -o '/data/50% of it/r/results.parquet'
/opt/venv/bin/python -m vidpipe score '/data/50% of it/r'
