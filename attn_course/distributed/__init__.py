"""Attention over a sequence that several processes share: keys and values go around in a ring, or heads are spread over them."""

from attn_course.distributed.heads import head_parallel_attention
from attn_course.distributed.launch import DeviceFailed, on_devices
from attn_course.distributed.places import device_places
from attn_course.distributed.ring import ring_attention
from attn_course.distributed.wire import NeighbourLost, Wire

__all__ = ["DeviceFailed", "NeighbourLost", "Wire", "device_places", "head_parallel_attention", "on_devices", "ring_attention"]
