-- How many steps are steady, and their process.
SELECT count(*) AS count, any_value(process_id) AS process_id FROM facts.steps WHERE phase = 'steady'
