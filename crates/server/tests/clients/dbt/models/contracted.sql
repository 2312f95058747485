{{ config(materialized='table') }}
select id, name, joined from {{ ref('customers') }}
