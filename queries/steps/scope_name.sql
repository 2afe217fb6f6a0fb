SELECT nvtx FROM scope
