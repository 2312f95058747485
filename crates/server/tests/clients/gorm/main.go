// gorm: AutoMigrate forth and back, associations, queries, transactions, its migrator, and drop.
package main

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"sort"
	"time"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"
)

type Author struct {
	gorm.Model
	Name  string `gorm:"size:40;uniqueIndex;not null;comment:in full"`
	Email *string
	Books []Book
}

type Book struct {
	ID       uint
	Title    string  `gorm:"type:varchar(80);index:title_pages,priority:1"`
	Pages    int     `gorm:"index:title_pages,priority:2,sort:desc;check:pages_positive,pages > 0;default:1"`
	Price    float64 `gorm:"type:numeric(9,2)"`
	UID      string  `gorm:"type:uuid;default:gen_random_uuid()"`
	Data     string  `gorm:"type:jsonb;default:'{}'"`
	Cover    []byte
	OK       bool `gorm:"default:true"`
	Day      time.Time
	AuthorID uint
	Author   Author `gorm:"constraint:OnUpdate:CASCADE,OnDelete:CASCADE"`
	Tags     []Tag  `gorm:"many2many:book_tags"`
}

type Tag struct {
	Name string `gorm:"primaryKey"`
}

// Book2 is a Book after a change.
type Book2 struct {
	ID     uint
	Title  string `gorm:"type:text;uniqueIndex:ok_titles,where:ok"`
	Pages  int64  `gorm:"not null;default:2"`
	Rating int16  `gorm:"not null;default:5;index"`
	Note   string `gorm:"size:10;unique;default:null;comment:a note"`
	Kind   string `gorm:"size:5;index:by_kind,expression:lower(kind)"`
}

func (Book2) TableName() string { return "books" }

func equal(got, wanted any) {
	if !reflect.DeepEqual(got, wanted) {
		panic(fmt.Sprintf("got %#v, expected %#v", got, wanted))
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

var failed bool

func step(name string, run func()) {
	defer func() {
		if e := recover(); e != nil {
			failed = true
			fmt.Printf("%v\nFAILED %s\n", e, name)
		} else {
			fmt.Printf("ok %s\n", name)
		}
	}()
	run()
}

func main() {
	e := os.Getenv
	dsn := fmt.Sprintf("host=%s port=%s user=%s password=%s dbname=%s sslmode=disable TimeZone=UTC", e("PGHOST"), e("PGPORT"), e("PGUSER"), e("PGPASSWORD"), e("PGDATABASE"))
	db, err := gorm.Open(postgres.Open(dsn), &gorm.Config{TranslateError: true, Logger: logger.Default.LogMode(logger.Error)})
	must(err)
	m := db.Migrator()

	step("migrate", func() { must(db.AutoMigrate(&Author{}, &Tag{}, &Book{})) })
	step("migrate again", func() {
		dry := db.Session(&gorm.Session{})
		must(dry.AutoMigrate(&Author{}, &Tag{}, &Book{}))
		equal([]bool{m.HasTable(&Book{}), m.HasColumn(&Book{}, "pages"), m.HasIndex(&Book{}, "title_pages"),
			m.HasConstraint(&Book{}, "pages_positive"), m.HasConstraint(&Book{}, "fk_authors_books")}, []bool{true, true, true, true, true})
	})
	step("column types", func() {
		types, err := m.ColumnTypes(&Book{})
		must(err)
		got := map[string]string{}
		for _, t := range types {
			got[t.Name()] = t.DatabaseTypeName()
		}
		equal(got["title"]+" "+got["price"]+" "+got["uid"]+" "+got["id"], "varchar numeric uuid int8")
		length, _ := types[1].Length()
		equal(length, int64(80))
		precision, scale, _ := types[3].DecimalSize()
		equal([]int64{precision, scale}, []int64{9, 2})
		value, _ := types[2].DefaultValue()
		equal(value, "1")
	})
	step("insert", func() {
		authors := []Author{{Name: "Ann"}, {Name: "Bob"}}
		must(db.Create(&authors).Error)
		equal(authors[1].ID, uint(2))
		for i := 0; i < 10; i++ {
			must(db.Create(&Book{Title: fmt.Sprintf("b%d", i), Pages: 100 + i, Price: float64(i) + 0.5, Data: fmt.Sprintf(`{"n": %d}`, i),
				Cover: []byte{0, 255}, Day: time.Date(2024, 1, 2+i, 0, 0, 0, 0, time.UTC), AuthorID: authors[i%2].ID,
				Tags: []Tag{{Name: []string{"new", "old"}[i%2]}}}).Error)
		}
		var b Book
		must(db.Preload("Author").Preload("Tags").First(&b, "title = ?", "b3").Error)
		equal([]any{b.Author.Name, b.Tags[0].Name, b.Price, b.OK, len(b.UID), b.Cover, b.Day.Day()}, []any{"Bob", "old", 3.5, true, 36, []byte{0, 255}, 5})
	})
	step("queries", func() {
		var n int64
		must(db.Model(&Book{}).Joins("Author").Where(`"Author".name = ?`, "Ann").Where("data->>'n' IN ?", []string{"2", "4", "5"}).Count(&n).Error)
		equal(n, int64(2))
		var sums []struct {
			Name  string
			Total float64
		}
		must(db.Model(&Author{}).Select("authors.name, SUM(books.price) AS total").Joins("JOIN books ON books.author_id = authors.id").
			Group("authors.name").Having("COUNT(*) > ?", 3).Order("authors.name").Scan(&sums).Error)
		equal(fmt.Sprint(sums), "[{Ann 22.5} {Bob 27.5}]")
		var titles []string
		must(db.Model(&Book{}).Where("pages BETWEEN ? AND ?", 102, 104).Order("pages DESC").Limit(2).Offset(1).Pluck("title", &titles).Error)
		equal(titles, []string{"b3", "b2"})
		var books []Book
		must(db.Where("author_id IN (?)", db.Model(&Author{}).Select("id").Where("name = ?", "Bob")).Find(&books).Error)
		equal(len(books), 5)
		must(db.FindInBatches(&books, 4, func(tx *gorm.DB, batch int) error { return nil }).Error)
		rows, err := db.Model(&Book{}).Rows()
		must(err)
		defer rows.Close()
		rows.Next()
		must(db.ScanRows(rows, &Book{}))
	})
	step("upsert, update, delete", func() {
		must(db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "name"}}, DoUpdates: clause.AssignmentColumns([]string{"email"})}).
			Create(&Author{Name: "Ann", Email: new(string)}).Error)
		var a Author
		must(db.FirstOrCreate(&a, Author{Name: "Cy"}).Error)
		must(db.Delete(&a).Error)
		var n int64
		must(db.Unscoped().Model(&Author{}).Count(&n).Error)
		equal(n, int64(3))
		var changed []Book
		must(db.Model(&changed).Clauses(clause.Returning{}).Where("pages > ?", 107).Update("price", gorm.Expr("price * ?", 2)).Error)
		equal(len(changed), 2)
		equal(db.Clauses(clause.OnConflict{DoNothing: true}).Create(&[]Tag{{Name: "new"}, {Name: "rare"}}).RowsAffected, int64(1))
		must(db.Select("Tags").Delete(&Book{ID: 10}).Error)
		must(db.Model(&Book{ID: 1}).Association("Tags").Replace(&Tag{Name: "rare"}))
		equal(db.Model(&Book{ID: 1}).Association("Tags").Count(), int64(1))
	})
	step("errors", func() {
		equal(errors.Is(db.Create(&Author{Name: "Ann"}).Error, gorm.ErrDuplicatedKey), true)
		equal(errors.Is(db.Create(&Book{Title: "x", Pages: 1, AuthorID: 99}).Error, gorm.ErrForeignKeyViolated), true)
		equal(errors.Is(db.Create(&Book{Title: "x", Pages: -1, AuthorID: 1}).Error, gorm.ErrCheckConstraintViolated), true)
		equal(errors.Is(db.First(&Book{}, 999).Error, gorm.ErrRecordNotFound), true)
	})
	step("transactions", func() {
		err := db.Transaction(func(tx *gorm.DB) error {
			must(tx.Create(&Tag{Name: "gone"}).Error)
			tx.Transaction(func(tx *gorm.DB) error {
				must(tx.Create(&Tag{Name: "inner"}).Error)
				return errors.New("inner")
			})
			var b Book
			must(tx.Clauses(clause.Locking{Strength: "UPDATE", Options: "SKIP LOCKED"}).First(&b).Error)
			return errors.New("outer")
		})
		equal(err.Error(), "outer")
		var n int64
		must(db.Model(&Tag{}).Count(&n).Error)
		equal(n, int64(3))
	})
	step("migrate a change", func() {
		must(db.AutoMigrate(&Book2{}))
		must(db.AutoMigrate(&Book2{}))
		// Statements that the connection has prepared are of the table as it was.
		fresh, err := gorm.Open(postgres.Open(dsn), &gorm.Config{})
		must(err)
		var b Book2
		must(fresh.First(&b, "title = ?", "b1").Error)
		equal([]any{b.Pages, b.Rating}, []any{int64(101), int16(5)})
	})
	step("the migrator", func() {
		must(m.RenameColumn(&Book2{}, "rating", "score"))
		must(m.RenameIndex(&Book2{}, "title_pages", "pages_title"))
		must(m.DropIndex(&Book2{}, "pages_title"))
		must(m.DropIndex(&Book2{}, "by_kind"))
		must(m.DropConstraint(&Book{}, "pages_positive"))
		must(m.DropColumn(&Book2{}, "note"))
		must(m.AlterColumn(&Book{}, "Title"))
		must(m.CreateView("cheap", gorm.ViewOption{Query: db.Model(&Book{}).Where("price < ?", 3).Select("title"), Replace: true}))
		must(m.DropView("cheap"))
		indexes, err := m.GetIndexes(&Book{})
		must(err)
		names := []string{}
		for _, i := range indexes {
			names = append(names, i.Name())
		}
		sort.Strings(names)
		equal(names, []string{"idx_books_rating", "ok_titles"})
		must(m.RenameTable("tags", "labels"))
		must(m.RenameTable("labels", "tags"))
	})
	step("drop", func() {
		must(m.DropTable("book_tags", &Book{}, &Author{}, &Tag{}))
		tables, err := m.GetTables()
		must(err)
		equal(len(tables), 0)
	})
	if failed {
		os.Exit(1)
	}
}
