SELECT start_ns, end_ns FROM facts.rank_work WHERE process_id = $process AND gpu_id = $gpu
