"""Each rule in the form of a golden vector: a plain `input` in, a plain `output` out, for parity with upstream.

Adapters compare with what upstream does, so they also state upstream's errors and
faults, which the rules themselves mend or guard against.
"""
