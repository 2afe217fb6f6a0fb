"""What is tried when files cannot be read, or a query fails, as they were opened."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.errors import QueryError, TraceError
from nsys_insight.ingest import bad_rows, database
from nsys_insight.ingest.attach import is_damaged, is_unreadable_cell
from nsys_insight.session import sandbox

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nsys_insight.errors import InsightError
    from nsys_insight.ingest.files import File
    from nsys_insight.ingest.watch import Watch
    from nsys_insight.session.open_strategies import OpenStrategies
    from nsys_insight.session.store import Store


class Recovery:
    """Decides how the files are opened next: with more memory, in another way, without what stopped them before.

    `validates_rows` says that impossible rows are to be left out, `uses_files` that facts may be put into files.
    """

    def __init__(self, files: Sequence[File], strategies: OpenStrategies, watch: Watch) -> None:
        """Nothing has failed yet."""
        self._files, self._strategies, self._watch = files, strategies, watch
        self.validates_rows, self.uses_files = False, True

    def changed(self) -> InsightError | None:
        """Tell that a file is not what it was: a copy leaves strings and call stacks in it."""
        return self._watch.changed()

    def may_run_again(self, error: Exception, stores: Iterable[Store], *, first: bool) -> bool:
        """Tell whether what failed may be run again, as the files are opened next.

        Args:
            error: Why it failed.
            stores: The work files that it read or wrote.
            first: Whether DuckDB itself has not failed before.

        Raises:
            QueryError: It needs more memory than there may be.
            TraceError: The files cannot be read in any way.
        """
        import duckdb

        if isinstance(error, duckdb.OutOfMemoryException):
            self.make_room(error)
            return True
        if not isinstance(error, (duckdb.InternalException, duckdb.FatalException)):
            return self.may_get_over(error, stores)
        # DuckDB's own fault, seen once in hundreds of runs, makes its connection useless: ask once more anew.
        if not first and not self._strategies.cached:
            return False
        self._strategies.repeat() if first else self.get_over(error)
        self.uses_files = False
        return True

    def may_get_over(self, error: Exception, stores: Iterable[Store]) -> bool:
        """Tell whether to try once more what failed: in the next way, or without rows that cannot be true."""
        import duckdb

        if database.spill_failed(error):
            return False
        if self.uses_files and any(store.concerns(error) for store in stores):
            self.uses_files = False
            self._strategies.repeat()
            return True
        broken = self._strategies.cached and isinstance(error, duckdb.IOException)
        if broken or is_unreadable_cell(error):
            self.get_over(error)
        elif is_damaged(error):
            raise self._unreadable(error) from None
        elif self.validates_rows or not bad_rows.may_have_met(error):
            return False
        else:
            self.validates_rows = True
            self._strategies.repeat()
        return True

    def make_room(self, error: Exception) -> None:
        """Raise, unless wider limits are left to open the files with once more."""
        wider = None if "max_temp_directory_size" in str(error) else self._strategies.limits.wider()
        if wider is None:
            raise self.out_of_memory(error) from None
        self._strategies.limits = wider
        self._strategies.repeat()

    def get_over(self, error: Exception) -> None:
        """Raise, unless the next way may do better."""
        if not self._strategies.get_over(error):
            raise self._unreadable(error) from None

    def out_of_memory(self, error: Exception) -> QueryError:
        """Say what was too little."""
        if "max_temp_directory_size" in str(error):
            return QueryError(
                f"this would spill more than {sandbox.SPILL} to {database.spill_folder()}", "query less at a time"
            )
        limit, _ = self._strategies.limits.settled
        return QueryError(f"this needs more memory than the limit of {limit}", "raise the limit: --memory 4GB")

    def _unreadable(self, error: Exception) -> InsightError:
        if changed := self.changed():
            return changed
        which = ", ".join(str(file.path) for file in self._files[:3])
        return TraceError(
            f"{which} cannot be read: {str(error).partition(chr(10))[0]}",
            "export it again: nsys export --type sqlite -o trace.sqlite trace.nsys-rep",
        )
