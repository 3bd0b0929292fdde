"""Repairs of the installed vLLM: loaded into every process that it starts, active only for a run that asks for them.

How it works: `repairs.wanted` says which repairs a run needs; the engine writes their names into
one environment variable (`settings`); vLLM calls `plugin.load` in every process through the entry
point group `vllm.general_plugins`; `gate` decides for each repair whether the installed version
has the fault and can be repaired; `worker` and `run` ask every process afterwards whether the
repairs are really there, and the run stops if one is not.

A repair is one small module with a `Repair`: its faults, the versions it is for, the upstream
functions that it relies on, and how to tell in a worker that it is active.
"""
