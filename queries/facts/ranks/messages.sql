INSERT INTO facts.messages BY NAME SELECT *, $communicator AS communicator FROM found
