#!/bin/bash
# Tasks of this array are workers on one run directory. The array index selects nothing: any number of tasks,
# requeued or submitted again, share what is left.
#SBATCH --job-name=r
#SBATCH --array=0-0
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --chdir=/data/runs/r
#SBATCH --output=/data/runs/r/slurm/%A_%a.log
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=B:USR1@120

set -eu

# Scratch on the node's own disk, where the site gives one.
if [ -n "${SLURM_TMPDIR:-}" ]; then
    export TMPDIR="$SLURM_TMPDIR"
fi
# Engines on one node look for free ports from places of their own.
export VLLM_PORT="$((20000 + ${SLURM_JOB_ID:-0} % 400 * 100))"

# exec: Slurm's signals reach vidpipe itself, which gives back its work and asks to be queued again.
exec /opt/venv/bin/python -m vidpipe slurm task '/data/my recipe.yaml' -o /data/runs/r
