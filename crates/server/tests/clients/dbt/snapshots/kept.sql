{% snapshot kept %}{{ config(target_schema='dbt', unique_key='id', strategy='check', check_cols=['name'], invalidate_hard_deletes=true) }}
select id, name from {{ ref('customers') }}{% endsnapshot %}
