/* parameters = ["part"] */
-- The metric of a part of the idle time in a budget.
'idle_' || CASE part WHEN 'start-up and end' THEN 'start_end' ELSE part END || '_ns';
