-- The short form of a copy direction: H2D for nsys's 'Host-to-Device'.
CREATE MACRO copy_kind_word(label) AS
    replace(
        replace(
            replace(replace(replace(replace(label, 'Unified ', 'UM '), 'Host', 'H'), 'Device', 'D'), 'Array', 'A'),
            'Peer', 'P'
        ),
        '-to-', '2'
    );
