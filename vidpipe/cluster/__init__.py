"""From one machine to many: Slurm submits `vidpipe run` often; the run directory shares out the work."""
