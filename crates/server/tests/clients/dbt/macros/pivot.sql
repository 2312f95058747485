{% macro dbt_pivot(column) %}{% for value in [1, 2, 3] %}sum(case when {{ column }} = {{ value }} then amount else 0 end) as c{{ value }}{{ "," if not loop.last }}{% endfor %}{% endmacro %}
