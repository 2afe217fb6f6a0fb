-- How many ranges of the process are the scope.
SELECT count(*) AS count FROM internal.scope_matching_ranges WHERE process_id = $process
