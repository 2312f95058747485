// Hibernate over HikariCP: hbm2ddl's create, update and validate, entities with collections, HQL, locks, batches, drop.
import com.fasterxml.jackson.annotation.JsonProperty;
import jakarta.persistence.*;
import java.math.BigDecimal;
import java.time.*;
import java.util.*;
import java.util.function.*;
import org.hibernate.*;
import org.hibernate.annotations.*;
import org.hibernate.cfg.Configuration;
import org.hibernate.exception.ConstraintViolationException;
import org.hibernate.type.SqlTypes;

public class Project {
    interface Step { void run() throws Exception; }
    static boolean failed;

    static String e(String name) { return System.getenv(name); }

    static void step(String name, Step step) {
        try {
            step.run();
            System.out.println("ok " + name);
        } catch (Throwable error) {
            failed = true;
            error.printStackTrace(System.out);
            System.out.println("FAILED " + name);
        }
    }

    static void equal(Object got, Object wanted) {
        if (!Objects.equals(got, wanted)) throw new AssertionError("got " + got + ", expected " + wanted);
    }

    enum Mood { GLAD, SAD }

    @Entity(name = "Author") @Table(name = "author", indexes = @jakarta.persistence.Index(name = "by_born", columnList = "born desc, name"))
    static class Author {
        @Id @GeneratedValue(strategy = GenerationType.SEQUENCE) Long id;
        @Column(length = 40, nullable = false, unique = true) String name;
        @Enumerated(EnumType.STRING) Mood mood = Mood.GLAD;
        @JdbcTypeCode(SqlTypes.NAMED_ENUM) Mood named = Mood.SAD;
        LocalDate born;
        @jakarta.persistence.Version int version;
        @CreationTimestamp(source = SourceType.DB) @ColumnDefault("now()") OffsetDateTime made;
        @OneToMany(mappedBy = "author", cascade = jakarta.persistence.CascadeType.ALL, orphanRemoval = true) @OrderBy("title") List<Book> books = new ArrayList<>();
        @ElementCollection Map<String, String> links = new TreeMap<>();
        @Embedded Place place = new Place();
    }

    @Embeddable static class Place { String town; @Check(constraints = "zip > 0") Integer zip; }

    static class Data { @JsonProperty public int n; @JsonProperty public List<String> words; }

    @Entity(name = "Book") @Inheritance(strategy = InheritanceType.JOINED) @Table(name = "book")
    static class Book {
        @Id @GeneratedValue(strategy = GenerationType.UUID) UUID id;
        @Column(columnDefinition = "text") String title;
        @Column(precision = 9, scale = 2) BigDecimal price;
        @ManyToOne(fetch = FetchType.LAZY) @OnDelete(action = OnDeleteAction.CASCADE) Author author;
        @ManyToMany(cascade = jakarta.persistence.CascadeType.PERSIST) @JoinTable(name = "book_tag") Set<Tag> tags = new HashSet<>();
        @JdbcTypeCode(SqlTypes.JSON) Data data;
        String[] words;
        List<Integer> numbers;
        byte[] cover;
        LocalTime hour;
        Duration length;
        Instant at;
        double x;
        boolean ok;
        Character letter;
        @GeneratedColumn("price * 2") @Column(precision = 12, scale = 2) BigDecimal twice;
    }

    @Entity(name = "Novel") static class Novel extends Book { int chapters; }

    @Entity(name = "Tag") @Table(name = "tag", uniqueConstraints = @UniqueConstraint(name = "one_tag", columnNames = {"name", "kind"}))
    static class Tag {
        @Id @GeneratedValue(strategy = GenerationType.IDENTITY) Integer id;
        String name;
        short kind;
        
    }

    @Entity(name = "Author") @Table(name = "author")
    static class Author2 {
        @Id @GeneratedValue(strategy = GenerationType.SEQUENCE, generator = "s") @SequenceGenerator(name = "s", sequenceName = "author_SEQ") Long id;
        @Column(length = 40, nullable = false, unique = true) String name;
        LocalDate born;
        @jakarta.persistence.Version int version;
        @ColumnDefault("7") Integer score;
        @Column(unique = true) String email;
        @ManyToOne Tag favourite;
    }

    static SessionFactory factory(String action, Class<?>... classes) {
        Configuration c = new Configuration();
        for (Class<?> k : classes) c.addAnnotatedClass(k);
        return c.setProperty("jakarta.persistence.jdbc.url", "jdbc:postgresql://" + e("PGHOST") + ":" + e("PGPORT") + "/" + e("PGDATABASE"))
            .setProperty("jakarta.persistence.jdbc.user", e("PGUSER")).setProperty("jakarta.persistence.jdbc.password", e("PGPASSWORD"))
            .setProperty("hibernate.connection.provider_class", "org.hibernate.hikaricp.internal.HikariCPConnectionProvider").setProperty("hibernate.hikari.maximumPoolSize", "3")
            .setProperty("hibernate.hbm2ddl.auto", action).setProperty("hibernate.hbm2ddl.halt_on_error", "true").setProperty("hibernate.jdbc.batch_size", "20")
            .setProperty("hibernate.order_inserts", "true").setProperty("hibernate.query.hql.json_functions_enabled", "true").buildSessionFactory();
    }

    static SessionFactory f;

    static Object one(String sql) { return f.fromTransaction(s -> s.createNativeQuery(sql, Object.class).getSingleResult()); }

    static Throwable cause(Runnable r) {
        try {
            r.run();
        } catch (Throwable error) {
            return error;
        }
        throw new AssertionError("it passed");
    }

    static <T> List<T> list(String hql, Class<T> type) { return f.fromTransaction(s -> s.createSelectionQuery(hql, type).getResultList()); }

    public static void main(String[] arguments) {
        java.util.logging.LogManager.getLogManager().reset();
        Class<?>[] all = {Author.class, Book.class, Novel.class, Tag.class};
        step("create", () -> f = factory("create", all));
        step("validate", () -> factory("validate", all).close());
        step("update changes nothing", () -> factory("update", all).close());
        step("insert", () -> f.inTransaction(s -> {
            Tag[] tags = {new Tag(), new Tag()};
            tags[0].name = "new";
            tags[1].name = "old";
            for (int a = 0; a < 2; a++) {
                Author author = new Author();
                author.name = a == 0 ? "Ann" : "Bob";
                author.born = LocalDate.of(1970 + a, 2, 3);
                author.links.put("web", "x" + a);
                author.place.town = "T";
                author.place.zip = 5;
                for (int i = 0; i < 10; i++) {
                    Book b = i % 5 == 0 ? new Novel() : new Book();
                    if (b instanceof Novel n) n.chapters = i;
                    b.title = "b" + a + i;
                    b.price = new BigDecimal(i + ".25");
                    b.author = author;
                    b.tags.add(tags[i % 2]);
                    b.data = new Data();
                    b.data.n = i;
                    b.data.words = List.of("w" + i);
                    b.words = new String[] {"x", null, "y" + i};
                    b.numbers = List.of(i, 2);
                    b.cover = new byte[] {0, -1};
                    b.hour = LocalTime.of(3, 4, 5);
                    b.length = Duration.ofSeconds(90);
                    b.at = Instant.parse("2024-01-02T03:04:05.678901Z");
                    b.x = 1.5;
                    b.letter = 'q';
                    author.books.add(b);
                }
                s.persist(author);
            }
        }));
        step("read back", () -> f.inTransaction(s -> {
            Book b = s.createSelectionQuery("from Book where title = 'b03'", Book.class).getSingleResult();
            Author author = (Author) Hibernate.unproxy(b.author);
            equal(Arrays.asList(b.price, b.data.words, Arrays.asList(b.words), b.numbers, b.cover.length, b.hour, b.length, b.at, b.letter, b.twice, author.name, new TreeMap<>(author.links), b.tags.size()),
                Arrays.asList(new BigDecimal("3.25"), List.of("w3"), Arrays.asList("x", null, "y3"), List.of(3, 2), 2, LocalTime.of(3, 4, 5), Duration.ofSeconds(90), Instant.parse("2024-01-02T03:04:05.678901Z"), 'q',
                    new BigDecimal("6.50"), "Ann", Map.of("web", "x0"), 1));
            equal(List.of(author.named, author.mood, author.books.size()), List.of(Mood.SAD, Mood.GLAD, 10));
        }));
        step("HQL", () -> {
            equal(list("select a.name from Author a join a.books b where b.price > 5 group by a having count(b) > 3 order by a.name", String.class), List.of("Ann", "Bob"));
            equal(list("select b from Book b join fetch b.author where b.title like 'b0%' order by b.price desc nulls last limit 2 offset 1", Book.class).size(), 2);
            equal(list("select n.title from Novel n where n.chapters = 5 order by n.title", String.class), List.of("b05", "b15"));
            equal(list("select b.title from Book b where type(b) = Novel and b.author.born > {1970-12-31} order by 1", String.class), List.of("b10", "b15"));
            equal(list("select b.title from Book b where array_contains(b.numbers, 7) and size(b.tags) = 1 order by b.title", String.class), List.of("b07", "b17"));
            equal(list("select b.title from Book b where array_length(b.words) = 3 and b.at between {2024-01-01 00:00:00Z} and {2024-02-01 00:00:00Z} and extract(year from b.at) = 2024 and b.title = 'b01'", String.class), List.of("b01"));
            equal(list("select listagg(b.title, ',') within group (order by b.title) from Book b where b.price < 2 group by b.author.id order by 1", String.class), List.of("b00,b01", "b10,b11"));
            equal(list("select row_number() over (partition by b.author.id order by b.price) from Book b where b.price < 2 order by 1", Long.class), List.of(1L, 1L, 2L, 2L));
            equal(list("with c as (select b.author.id as a, sum(b.price) as t from Book b group by b.author.id) select cast(sum(x.t) as int) from c x", Integer.class), List.of(95));
            equal(list("select a.name from Author a where exists (select 1 from a.books b where b.data is null) or a.place.town = 'T' order by a.name", String.class), List.of("Ann", "Bob"));
            equal(list("select cast(json_value(b.data, '$.n') as Integer) from Book b where b.title = 'b04'", Integer.class), List.of(4));
            equal(list("select b.title from Author a left join lateral (select k.title as title from Book k where k.author = a order by k.price desc limit 1) b order by 1", String.class), List.of("b09", "b19"));
            equal(list("select value(l) from Author a join a.links l where key(l) = 'web' order by 1", String.class), List.of("x0", "x1"));
            equal(list("select b.title from Book b where b.price = all (select max(k.price) from Book k) union select a.name from Author a", String.class).stream().sorted().toList(), List.of("Ann", "Bob", "b09", "b19"));
        });
        step("criteria and native queries", () -> f.inTransaction(s -> {
            var cb = s.getCriteriaBuilder();
            var q = cb.createQuery(Object[].class);
            var b = q.from(Book.class);
            var a = b.<Book, Author>join("author");
            q.multiselect(a.get("name"), cb.count(b), cb.sum(b.<BigDecimal>get("price"))).groupBy(a.get("name")).orderBy(cb.asc(a.get("name")));
            equal(Arrays.toString(s.createSelectionQuery(q).getResultList().get(0)), "[Ann, 10, 47.50]");
            equal(s.createNativeQuery("SELECT b.* FROM book b WHERE b.price > :p AND b.id NOT IN (SELECT id FROM Novel) ORDER BY title", Object[].class).setParameter("p", new BigDecimal("8")).getResultList().size(), 4);
        }));
        step("update and delete", () -> {
            equal(f.fromTransaction(s -> s.createMutationQuery("update Book set price = price + 1 where author.id in (select id from Author where name = 'Ann')").executeUpdate()), 10);
            equal(f.fromTransaction(s -> s.createMutationQuery("update Novel set chapters = 9, title = title || '!' where chapters = 5").executeUpdate()), 2);
            equal(f.fromTransaction(s -> s.createMutationQuery("insert into Tag (name, kind) select t.name, cast(2 as Short) from Tag t where t.name = 'new'").executeUpdate()), 1);
            equal(f.fromTransaction(s -> s.createMutationQuery("insert into Tag (name, kind) values ('new', cast(0 as Short)) on conflict (name, kind) do update set name = excluded.name").executeUpdate()), 1);
            equal(f.fromTransaction(s -> s.createMutationQuery("delete from Novel where chapters = 0").executeUpdate()), 2);
            f.inTransaction(s -> {
                Author ann = s.createSelectionQuery("from Author where name = 'Ann'", Author.class).getSingleResult();
                ann.books.remove(0);
                ann.links.clear();
                ann.place.zip = 6;
            });
            equal(one("SELECT version FROM author WHERE name = 'Ann'"), 1);
        });
        step("locks", () -> f.inTransaction(s -> {
            for (LockMode m : List.of(LockMode.PESSIMISTIC_WRITE, LockMode.PESSIMISTIC_READ, LockMode.UPGRADE_SKIPLOCKED, LockMode.UPGRADE_NOWAIT, LockMode.PESSIMISTIC_FORCE_INCREMENT))
                equal(s.createSelectionQuery("from Author where name = 'Bob'", Author.class).setHibernateLockMode(m).getSingleResult().name, "Bob");
            equal(s.createSelectionQuery("from Author a left join fetch a.books where a.name = 'Bob'", Author.class).setLockMode(LockModeType.PESSIMISTIC_WRITE).getResultList().size(), 1);
            s.createSelectionQuery("from Book order by title limit 1", Book.class).setLockMode(LockModeType.PESSIMISTIC_WRITE).getResultList();
        }));
        step("optimistic locks", () -> {
            Author[] a = new Author[1];
            f.inTransaction(s -> a[0] = s.createSelectionQuery("from Author where name = 'Bob'", Author.class).getSingleResult());
            f.inTransaction(s -> s.createSelectionQuery("from Author where name = 'Bob'", Author.class).getSingleResult().born = null);
            a[0].born = LocalDate.EPOCH;
            equal(cause(() -> f.inTransaction(s -> s.merge(a[0]))) instanceof OptimisticLockException, true);
        });
        step("constraints", () -> {
            Throwable error = cause(() -> f.inTransaction(s -> { Author a = new Author(); a.name = "Ann"; s.persist(a); }));
            equal(((ConstraintViolationException) error).getKind().toString(), "UNIQUE");
            error = cause(() -> f.inTransaction(s -> s.createMutationQuery("update Author set place.zip = -1").executeUpdate()));
            equal(((ConstraintViolationException) error).getSQLState(), "23514");
            error = cause(() -> f.inTransaction(s -> s.createNativeMutationQuery("INSERT INTO book_tag (tags_id, Book_id) SELECT 99, id FROM book").executeUpdate()));
            equal(((ConstraintViolationException) error).getSQLState(), "23503");
        });
        step("update adds columns", () -> {
            f.close();
            f = factory("update", Author2.class, Tag.class);
            f.inTransaction(s -> {
                Author2 a = new Author2();
                a.name = "Cy";
                a.email = "c@d";
                a.favourite = s.createSelectionQuery("from Tag order by id limit 1", Tag.class).getSingleResult();
                s.persist(a);
            });
            equal(one("SELECT count(*) FROM author WHERE favourite_id IS NOT NULL"), 1L);
            factory("validate", Author2.class, Tag.class).close();
        });
        step("drop", () -> {
            f.close();
            f = factory("create", all);
            f.getSchemaManager().truncate();
            f.getSchemaManager().drop(false);
            equal(one("SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"), 0L);
            f.close();
        });
        System.exit(failed ? 1 : 0);
    }
}
