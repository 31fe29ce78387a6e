"""Stand-in for the nixl meta package on a host without a GPU: the real agent of nixl_cu12, with the KV cache as host memory."""
