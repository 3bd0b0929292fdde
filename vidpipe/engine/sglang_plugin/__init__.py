"""What SGLang loads of vidpipe: multimodal processors in place of its own. See `sglang_environment.PLUGIN`."""
