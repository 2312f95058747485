// pgx: a pool, types and arrays in binary form, batches, COPY, rows into structs, listeners, cancelling, and all modes of execution.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

type item struct {
	ID    int64
	Name  string
	N     *int32
	Words []string
	Data  map[string]any
	Day   time.Time
	Price pgtype.Numeric
	UID   [16]byte `db:"uid"`
	Mood  string
	Raw   []byte
	Grid  [][]int32
	Lent  time.Duration
}

func equal(got, wanted any) {
	if !reflect.DeepEqual(got, wanted) {
		panic(fmt.Sprintf("got %#v, expected %#v", got, wanted))
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

var failed bool

func step(name string, run func(context.Context)) {
	defer func() {
		if e := recover(); e != nil {
			failed = true
			fmt.Printf("%v\nFAILED %s\n", e, name)
		} else {
			fmt.Printf("ok %s\n", name)
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	run(ctx)
}

func main() {
	e := os.Getenv
	dsn := fmt.Sprintf("host=%s port=%s user=%s password=%s dbname=%s sslmode=disable", e("PGHOST"), e("PGPORT"), e("PGUSER"), e("PGPASSWORD"), e("PGDATABASE"))
	pool := must(pgxpool.New(context.Background(), dsn))

	step("migrate", func(ctx context.Context) {
		must(pool.Exec(ctx, `CREATE TYPE mood AS ENUM ('glad', 'sad');
			CREATE TABLE item (id BIGSERIAL PRIMARY KEY, name TEXT UNIQUE, n INT CHECK (n > 0), words TEXT[], data JSONB, day DATE, price NUMERIC(9,2),
			uid UUID, mood mood, raw BYTEA, grid INT[][], lent INTERVAL)`))
	})
	step("a row and back", func(ctx context.Context) {
		n := int32(5)
		want := item{1, "a", &n, []string{"x", "y"}, map[string]any{"n": 1.0}, time.Date(2024, 1, 2, 0, 0, 0, 0, time.UTC), pgtype.Numeric{}, [16]byte{15: 7}, "sad", []byte{0, 255}, [][]int32{{1, 2}, {3, 4}}, time.Hour}
		must(pool.Exec(ctx, `INSERT INTO item (name, n, words, data, day, price, uid, mood, raw, grid, lent) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
			want.Name, want.N, want.Words, want.Data, want.Day, "1.25", want.UID, want.Mood, want.Raw, want.Grid, want.Lent))
		rows := must(pool.Query(ctx, "SELECT * FROM item"))
		got := must(pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[item]))
		equal(must(got.Price.Float64Value()).Float64, 1.25)
		got.Price = pgtype.Numeric{}
		equal(got, want)
	})
	step("all modes of execution", func(ctx context.Context) {
		for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
			var sum int64
			var words []string
			if err := pool.QueryRow(ctx, "SELECT n + $1::int, words || $2::text[] FROM item WHERE name = $3 AND n = ANY($4::int[])", mode, 2, []string{"z"}, "a", []int32{5}).Scan(&sum, &words); err != nil {
				panic(fmt.Sprint(mode, err))
			}
			equal(sum, int64(7))
			equal(words, []string{"x", "y", "z"})
		}
	})
	step("batches", func(ctx context.Context) {
		b := &pgx.Batch{}
		for i := 0; i < 10; i++ {
			b.Queue("INSERT INTO item (name, n) VALUES ($1, $2)", fmt.Sprintf("b%d", i), i+1)
		}
		n := 0
		b.Queue("SELECT count(*) FROM item").QueryRow(func(row pgx.Row) error { return row.Scan(&n) })
		must(0, pool.SendBatch(ctx, b).Close())
		equal(n, 11) // not before Close, without which the connection would keep its locks
	})
	step("copy", func(ctx context.Context) {
		rows := [][]any{{"c1", 1, []string{"p"}, time.Date(2024, 1, 2, 0, 0, 0, 0, time.UTC), "sad"}, {"c2", nil, []string{}, nil, nil}}
		equal(must(pool.CopyFrom(ctx, pgx.Identifier{"item"}, []string{"name", "n", "words", "day", "mood"}, pgx.CopyFromRows(rows))), int64(2))
	})
	step("an enum's array", func(ctx context.Context) {
		c := must(pool.Acquire(ctx))
		defer c.Release()
		types := must(c.Conn().LoadTypes(ctx, []string{"mood", "_mood"}))
		c.Conn().TypeMap().RegisterTypes(types)
		var moods []string
		must(0, c.QueryRow(ctx, "SELECT array_agg(mood) FROM item WHERE mood = $1", "sad").Scan(&moods))
		equal(moods, []string{"sad", "sad"})
	})
	step("a column of one dimension refuses two", func(ctx context.Context) {
		must(pool.Exec(ctx, "CREATE TABLE flat (grid INT[])"))
		_, err := pool.Exec(ctx, "INSERT INTO flat VALUES ($1)", [][]int32{{1, 2}, {3, 4}})
		var e *pgconn.PgError
		equal(errors.As(err, &e), true)
		equal(e.Code, "22P02")
		must(pool.Exec(ctx, "DROP TABLE flat"))
	})
	step("errors and transactions", func(ctx context.Context) {
		err := pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
			must(tx.Exec(ctx, "DELETE FROM item"))
			inner := must(tx.Begin(ctx))
			_, err := inner.Exec(ctx, "INSERT INTO item (name, n) VALUES ('w', 0)")
			var e *pgconn.PgError
			equal(errors.As(err, &e), true)
			equal([]string{e.Code, e.ConstraintName, e.TableName}, []string{"23514", "item_n_check", "item"})
			must(0, inner.Rollback(ctx))
			return errors.New("no")
		})
		equal(err.Error(), "no")
		var n int
		must(0, pool.QueryRow(ctx, "SELECT count(*) FROM item").Scan(&n))
		equal(n, 13)
	})
	step("listening", func(ctx context.Context) {
		c := must(pool.Acquire(ctx))
		defer c.Release()
		must(c.Exec(ctx, "LISTEN news"))
		must(pool.Exec(ctx, "SELECT pg_notify('news', 'hello')"))
		equal(must(c.Conn().WaitForNotification(ctx)).Payload, "hello")
	})
	step("cancelling", func(ctx context.Context) {
		short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		defer cancel()
		_, err := pool.Exec(short, "SELECT pg_sleep(20)")
		equal(err != nil, true)
		must(pool.Exec(ctx, "SELECT 1"))
	})
	step("drop", func(ctx context.Context) {
		must(pool.Exec(ctx, "DROP TABLE item; DROP TYPE mood"))
	})
	if failed {
		os.Exit(1)
	}
}
