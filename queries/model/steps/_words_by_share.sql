/* parameters = ["causes"] */
-- The words of a verdict, that of the largest share first. Of equal shares, the order of the list counts.
list_transform(
    list_reverse_sort(list_transform(causes, lambda n, i: {'pct': n.pct, 'place': -i, 'bound': n.bound})),
    lambda n: n.bound
);
