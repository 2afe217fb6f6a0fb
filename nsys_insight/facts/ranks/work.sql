SELECT start_ns, end_ns FROM _rank_work WHERE process_id = $process AND gpu_id = $gpu
