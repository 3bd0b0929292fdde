#!/bin/bash
# Tasks of this array are workers on one run directory. The array index selects nothing: any number of tasks,
# requeued or submitted again, share what is left.
#SBATCH --job-name=r
#SBATCH --array=0-63%16
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --gres=gpu:2
#SBATCH --time=4:00:00
#SBATCH --partition=gpu
#SBATCH --chdir="/data/50% of it/r"
#SBATCH --output="/data/50%% of it/r/slurm"/%A_%a.log
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=B:USR1@300
#SBATCH --account=video
#SBATCH --cpus-per-task=16
#SBATCH --exclusive
#SBATCH --comment="for the demo"

set -eu

# Scratch on the node's own disk, where the site gives one.
if [ -n "${SLURM_TMPDIR:-}" ]; then
    export TMPDIR="$SLURM_TMPDIR"
fi
# Engines on one node look for free ports from places of their own.
export VLLM_PORT="$((20000 + ${SLURM_JOB_ID:-0} % 400 * 100))"

# exec: Slurm's signals reach vidpipe itself, which gives back its work and asks to be queued again.
exec /opt/venv/bin/python -m vidpipe slurm task '/data/my recipe.yaml' -o '/data/50% of it/r' --set generation.max_tokens=3 --set 'prompt=What'"'"'s in {{ id }}?'
