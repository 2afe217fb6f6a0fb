SELECT nvtx, is_of_steps_alone FROM scope
