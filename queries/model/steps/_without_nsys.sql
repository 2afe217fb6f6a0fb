/* parameters = ["saving_ns", "most_ns", "late_ns", "late_left_ns"] */
-- What a saving of late launches is worth without nsys. late_left_ns of the idle time before late launches (late_ns) is
-- left without nsys. A saving that is at most most_ns loses its share of the difference.
greatest(saving_ns - (late_ns - late_left_ns) * least(1, most_ns / nullif(late_ns, 0)), 0);
