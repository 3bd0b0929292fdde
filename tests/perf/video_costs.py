"""The costs that vidpipe/video/plan.py reckons with: reading past packets, and seeking.

python tests/perf/video_costs.py FILE.mp4
"""

from __future__ import annotations

import random
import sys
import time

import numpy as np

from vidpipe.video.container import open_media
from vidpipe.video.packets import StreamPackets
from vidpipe.video.timeline import read_timeline

SEEKS = 200


def main(path: str) -> None:
    """Print CPU seconds a packet and a seek."""
    timeline = read_timeline(path)
    table = timeline.packets
    keys = np.flatnonzero(table.key)
    with open_media(path) as container:
        stream = container.streams[timeline.stream_index]
        start = time.process_time()
        count = sum(1 for _ in StreamPackets(container, stream))
        per_packet_s = (time.process_time() - start) / count
        start = time.process_time()
        for _ in range(SEEKS):
            container.seek(int(table.dts[random.choice(keys)]), stream=stream, backward=True)
            next(StreamPackets(container, stream))
        per_seek_s = (time.process_time() - start) / SEEKS
    print(f"{per_packet_s * 1e6:.1f} us a packet of {table.size.mean():.0f} bytes")
    print(f"{per_seek_s * 1e3:.2f} ms a seek")


if __name__ == "__main__":
    main(sys.argv[1])
