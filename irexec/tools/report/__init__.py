"""A report of a model: one page with everything that can be said of it, to send to somebody."""

from irexec.tools.report.writing import ReportOptions, WrittenReport, check_output, page_of, report

__all__ = ["ReportOptions", "WrittenReport", "check_output", "page_of", "report"]
