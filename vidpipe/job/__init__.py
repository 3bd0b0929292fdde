"""The run itself: plan, feed, engine and record in one loop."""
