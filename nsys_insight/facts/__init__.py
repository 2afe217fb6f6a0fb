"""The facts: tables that are expensive to compute and that several reports read, such as steps, gaps and idle time.

Each table is computed once per connection.
"""
