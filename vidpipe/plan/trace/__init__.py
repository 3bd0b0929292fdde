"""Rules of the plan as pure functions of a golden vector's input (see `vidpipe.models.trace`)."""
