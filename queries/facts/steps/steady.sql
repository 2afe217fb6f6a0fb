-- How many steps are steady.
SELECT count(*) AS count FROM facts.steps WHERE phase = 'steady'
