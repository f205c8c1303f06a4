"""Attention on a GPU: kernels in Triton, from a fused softmax to FlashAttention with its gradients.

Importing this room needs no Triton and no GPU; both are asked for when a kernel is called.
"""
