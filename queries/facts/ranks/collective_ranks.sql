INSERT INTO facts.collective_ranks BY NAME
SELECT collective, rank, start_ns, end_ns, CASE WHEN whole THEN waiting_ns END AS waiting_ns FROM found
