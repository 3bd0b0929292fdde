"""The environment of vLLM, before any file here imports torch: it reads the number of threads once."""

from vidpipe.engine import vllm_environment

vllm_environment.prepare("")
