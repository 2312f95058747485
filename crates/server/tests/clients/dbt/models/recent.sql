select id, customer_id, amount, ordered from {{ ref('orders') }} where ordered > date '2024-01-01'
