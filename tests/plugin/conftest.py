"""The environment of vLLM, before any file here imports torch: it reads the number of threads once."""

import os

from vidpipe.engine import vllm_environment

vllm_environment.prepare("")
# vLLM has one small function of its sampler, for log-probabilities, compiled in C++: ten seconds of a processor on a
# machine that has not done so before. So it runs as it is written.
os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")
