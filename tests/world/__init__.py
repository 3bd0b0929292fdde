"""A drawn world with exact answers: scenes, questions, pictures, and the training of the model that knows it.

Nothing here needs a video file or an engine: a scene says in closed form where everything is at every moment, so
whoever samples it at whatever times can tell what is right.
"""
