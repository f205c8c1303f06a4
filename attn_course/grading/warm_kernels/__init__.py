"""Kernels that are forked from a process which has imported the heavy libraries, so that a notebook starts at once.

Four parts, each a file: `owner` starts and ends the warm process; `warm_process` imports, listens and forks; `forked`
turns a fork into a kernel like any other; `provisioner` asks for one on behalf of jupyter_client, and starts a plain
kernel, with a word why, where that is not to be had. `quick_nbval` is a pytest plugin that also takes nbval's fixed waits away
and starts the next notebook's kernel ahead.

The warm process is the same user's, on the same machine: it saves time and confines nothing.
"""
