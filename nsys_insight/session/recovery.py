"""Recovery when files cannot be read or a query fails: how to open the files next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.errors import InsightError, QueryError, TraceError
from nsys_insight.ingest import bad_rows, database
from nsys_insight.ingest.attach import is_damaged, is_unreadable_cell
from nsys_insight.session import sandbox

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nsys_insight.ingest.files import File, FileGuard
    from nsys_insight.session.open_strategies import OpenStrategies
    from nsys_insight.session.store import Store


class Recovery:
    """Decides how the files are opened next: with more memory, with another strategy, or without invalid rows.

    `validates_rows`: leave out impossible rows. `stores_facts`: store facts on disk.
    """

    def __init__(
        self, files: Sequence[File], strategies: OpenStrategies, watch: FileGuard, stores: Iterable[Store]
    ) -> None:
        """Start with the settings for files without problems; `stores` are the work files of queries."""
        self._files, self._strategies, self._watch, self._stores = files, strategies, watch, stores
        self.validates_rows, self.stores_facts = False, True

    def file_change_error(self) -> InsightError | None:
        """Return an error if a file has changed. A copy still reads strings and call stacks from its file."""
        return self._watch.find_change()

    def prepare_retry(self, error: Exception, *, is_first_crash: bool) -> bool:
        """Choose how to open the files to run a failed query again; return whether to run it again.

        Args:
            error: Why the query failed.
            is_first_crash: Whether this is the first internal error of DuckDB.

        Raises:
            QueryError: The query needs more memory than the maximum.
            TraceError: The files cannot be read in any way.
        """
        import duckdb

        if isinstance(error, duckdb.OutOfMemoryException):
            self.raise_limits(error)
            return True
        if not isinstance(error, (duckdb.InternalException, duckdb.FatalException)):
            return self.prepare_fallback(error)
        # An internal error of DuckDB, seen once in hundreds of runs, breaks the connection: retry once with a new one.
        if not is_first_crash and not self._strategies.cached:
            return False
        self._strategies.repeat() if is_first_crash else self.fall_back(error)
        self.stores_facts = False
        return True

    def prepare_fallback(self, error: Exception) -> bool:
        """Choose the next strategy, or validation of rows, after an error; return whether to try again."""
        import duckdb

        if database.explain_spill_error(error):
            return False
        if self.stores_facts and any(store.is_about(error) for store in self._stores):
            self.stores_facts = False
            self._strategies.repeat()
            return True
        broken = self._strategies.cached and isinstance(error, duckdb.IOException)
        if broken or is_unreadable_cell(error):
            self.fall_back(error)
        elif is_damaged(error):
            raise self._unreadable(error) from None
        else:
            return bad_rows.can_be_row_error(error) and self.prepare_row_checks()
        return True

    def prepare_row_checks(self) -> bool:
        """Choose to leave out impossible rows; return False if they are left out already."""
        if self.validates_rows:
            return False
        self.validates_rows = True
        self._strategies.repeat()
        return True

    def raise_limits(self, error: Exception) -> None:
        """Raise the memory limits for the next attempt; raise the error if they are at their maximum."""
        wider = None if "max_temp_directory_size" in str(error) else self._strategies.limits.widen()
        if wider is None:
            raise self.out_of_memory(error) from None
        self._strategies.limits = wider
        self._strategies.repeat()

    def fall_back(self, error: Exception) -> None:
        """Fall back to the next strategy; raise an error if no strategy can succeed."""
        if not self._strategies.can_fall_back(error):
            raise self._unreadable(error) from None

    def out_of_memory(self, error: Exception) -> QueryError:
        """Return the error that names the limit that was too low."""
        if "max_temp_directory_size" in str(error):
            return QueryError(
                f"this would spill more than {sandbox.MAX_SPILL} to {database.spill_folder()}", "query less at a time"
            )
        limit, _ = self._strategies.limits.effective
        return QueryError(f"this needs more memory than the limit of {limit}", "raise the limit: --memory 4GB")

    def too_large_numbers(self, error: Exception) -> TraceError | None:
        """Return an error if numbers of the files, each of them possible, do not fit into 64 bits together."""
        if not (self.validates_rows and bad_rows.is_too_large(error)):
            return None
        return TraceError(
            f"the times or sizes in {self._names} are too large: together they do not fit into 64 bits",
            "choose a part with --from and --to, or export it again: nsys export --type sqlite",
        )

    @property
    def _names(self) -> str:
        return ", ".join(str(file.path) for file in self._files[:3])

    def _unreadable(self, cause: Exception) -> InsightError:
        if change_error := self.file_change_error():
            return change_error
        return TraceError(
            f"{self._names} cannot be read: {str(cause).partition(chr(10))[0]}",
            "export it again: nsys export --type sqlite -o trace.sqlite trace.nsys-rep",
        )
