"""Video files: what is in them, when each frame is shown, and its pixels."""
