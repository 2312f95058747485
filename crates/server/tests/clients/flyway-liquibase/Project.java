// Flyway and Liquibase: migrations with checksums and locks, drift found by comparing schemas, rollback, and back to nothing.
import java.nio.file.*;
import java.sql.*;
import java.util.*;
import java.util.stream.Collectors;
import liquibase.*;
import liquibase.changelog.ChangeSet;
import liquibase.command.CommandScope;
import liquibase.database.*;
import liquibase.database.jvm.JdbcConnection;
import liquibase.diff.DiffResult;
import liquibase.diff.compare.CompareControl;
import liquibase.diff.output.changelog.DiffToChangeLog;
import liquibase.diff.output.DiffOutputControl;
import liquibase.resource.DirectoryResourceAccessor;
import liquibase.snapshot.*;
import liquibase.structure.core.*;
import org.flywaydb.core.Flyway;
import org.flywaydb.core.api.*;

public class Project {
    interface Step { void run() throws Exception; }
    static boolean failed;
    static final String url = "jdbc:postgresql://" + e("PGHOST") + ":" + e("PGPORT") + "/" + e("PGDATABASE");

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

    static Connection connect() throws SQLException { return DriverManager.getConnection(url, e("PGUSER"), e("PGPASSWORD")); }

    static String one(String sql) throws SQLException {
        try (Connection c = connect(); ResultSet r = c.createStatement().executeQuery(sql)) {
            r.next();
            return r.getString(1);
        }
    }

    static Path home;

    static void write(String name, String text) throws Exception { Files.writeString(home.resolve(name), text); }

    static Flyway flyway() {
        return Flyway.configure().dataSource(url, e("PGUSER"), e("PGPASSWORD")).locations("filesystem:" + home).cleanDisabled(false)
            .placeholders(Map.of("size", "40")).load();
    }

    static Liquibase liquibase() throws Exception {
        Database database = DatabaseFactory.getInstance().findCorrectDatabaseImplementation(new JdbcConnection(connect()));
        return new Liquibase("changes.xml", new DirectoryResourceAccessor(home.resolve("lb")), database);
    }

    static String changes(String sets) {
        return "<databaseChangeLog xmlns=\"http://www.liquibase.org/xml/ns/dbchangelog\" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" "
            + "xsi:schemaLocation=\"http://www.liquibase.org/xml/ns/dbchangelog http://www.liquibase.org/xml/ns/dbchangelog/dbchangelog-latest.xsd\">" + sets + "</databaseChangeLog>";
    }

    static final String first = """
        <changeSet id="1" author="a">
          <createTable tableName="author" remarks="who writes">
            <column name="id" type="bigint" autoIncrement="true"><constraints primaryKey="true" primaryKeyName="author_key"/></column>
            <column name="name" type="varchar(40)" remarks="in full"><constraints nullable="false" unique="true" uniqueConstraintName="one_name"/></column>
            <column name="born" type="date"/><column name="ok" type="boolean" defaultValueBoolean="true"/>
            <column name="made" type="timestamp with time zone" defaultValueComputed="now()"/>
          </createTable>
          <createTable tableName="book">
            <column name="id" type="uuid" defaultValueComputed="gen_random_uuid()"><constraints primaryKey="true"/></column>
            <column name="author_id" type="bigint"><constraints foreignKeyName="book_author" references="author(id)" deleteCascade="true"/></column>
            <column name="title" type="clob"/><column name="price" type="decimal(9,2)" defaultValueNumeric="1.5"/><column name="n" type="int"/>
            <column name="cover" type="blob"/><column name="x" type="double"/>
          </createTable>
          <createIndex tableName="book" indexName="by_title"><column name="title"/><column name="price" descending="true"/></createIndex>
          <createSequence sequenceName="numbers" startValue="5" incrementBy="3" cacheSize="1"/>
          <createView viewName="cheap">SELECT id, title FROM book WHERE price &lt; 3</createView>
          <insert tableName="author"><column name="name" value="Ann"/><column name="born" valueDate="1970-02-03"/></insert>
        </changeSet>""";
    static final String second = """
        <changeSet id="2" author="a">
          <preConditions onFail="MARK_RAN"><tableExists tableName="author"/><not><columnExists tableName="book" columnName="pages"/></not><indexExists indexName="by_title"/>
            <foreignKeyConstraintExists foreignKeyName="book_author"/><primaryKeyExists tableName="author"/><sequenceExists sequenceName="numbers"/><viewExists viewName="cheap"/></preConditions>
          <addColumn tableName="book"><column name="pages" type="smallint" defaultValueNumeric="1"><constraints nullable="false"/></column></addColumn>
          <renameColumn tableName="book" oldColumnName="n" newColumnName="number" columnDataType="int"/>
          <addUniqueConstraint tableName="book" columnNames="title, author_id" constraintName="one_title" deferrable="true" initiallyDeferred="true"/>
          <addNotNullConstraint tableName="book" columnName="title" columnDataType="text" defaultNullValue="?"/>
          <addDefaultValue tableName="book" columnName="number" defaultValueNumeric="7"/>
          <renameTable oldTableName="author" newTableName="writer"/>
          <createIndex tableName="book" indexName="old_index"><column name="number"/></createIndex>
          <dropIndex tableName="book" indexName="old_index"/>
          <rollback><dropDefaultValue tableName="book" columnName="number"/><renameTable oldTableName="writer" newTableName="author"/><dropUniqueConstraint tableName="book" constraintName="one_title"/>
            <renameColumn tableName="book" oldColumnName="number" newColumnName="n"/><dropColumn tableName="book" columnName="pages"/></rollback>
        </changeSet>
        <changeSet id="3" author="a"><modifyDataType tableName="book" columnName="pages" newDataType="bigint"/><rollback/></changeSet>""";

    public static void main(String[] arguments) throws Exception {
        java.util.logging.LogManager.getLogManager().reset();
        home = Files.createTempDirectory("migrations");
        Files.createDirectory(home.resolve("lb"));
        write("V1__first.sql", """
            CREATE TABLE author (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name varchar(${size}) NOT NULL, mood text CHECK (mood IN ('glad', 'sad')));
            CREATE TABLE book (id serial PRIMARY KEY, author_id int REFERENCES author, title text);
            INSERT INTO author (name, mood) VALUES ('Ann; --', 'glad');
            CREATE TYPE kind AS ENUM ('a', 'b');
            COMMENT ON TABLE author IS 'x;y';
            """);
        write("V2__second.sql", "ALTER TABLE author ADD kind kind DEFAULT 'b';\nCREATE INDEX by_title ON book (title);\nCREATE MATERIALIZED VIEW sums AS SELECT author_id, count(*) AS n FROM book GROUP BY author_id;\n");
        write("R__names.sql", "CREATE OR REPLACE VIEW names AS SELECT name FROM author;\n");
        step("flyway migrates", () -> {
            equal(flyway().migrate().migrationsExecuted, 3);
            equal(flyway().migrate().migrationsExecuted, 0);
            equal(one("SELECT kind FROM author"), "b");
        });
        step("flyway info and validate", () -> {
            flyway().validate();
            equal(Arrays.stream(flyway().info().all()).map(i -> i.getState().getDisplayName()).collect(Collectors.toList()), List.of("Success", "Success", "Success"));
            equal(flyway().info().current().getDescription(), "second");
        });
        step("a flyway migration that fails leaves nothing", () -> {
            write("V3__bad.sql", "CREATE TABLE half (a int);\nINSERT INTO author (name, mood) VALUES ('x', 'calm');\n");
            try {
                flyway().migrate();
                throw new AssertionError("it passed");
            } catch (FlywayException expected) {
                equal(one("SELECT to_regclass('half')"), null);
            }
            Files.delete(home.resolve("V3__bad.sql"));
            equal(flyway().repair().repairActions.size() >= 0, true);
        });
        step("a flyway migration outside a transaction", () -> {
            write("V4__now.sql", "CREATE INDEX CONCURRENTLY by_name ON author (name);\n");
            write("V4__now.sql.conf", "executeInTransaction=false\n");
            var unlocked = Flyway.configure().configuration(flyway().getConfiguration());
            unlocked.getConfigurationExtension(org.flywaydb.database.postgresql.PostgreSQLConfigurationExtension.class).setTransactionalLock(false);
            equal(unlocked.load().migrate().migrationsExecuted, 1);
        });
        step("flyway in two schemas, with a baseline", () -> {
            Flyway f = Flyway.configure().dataSource(url, e("PGUSER"), e("PGPASSWORD")).locations("filesystem:" + home).schemas("one", "two").baselineVersion("3").cleanDisabled(false)
                .placeholders(Map.of("size", "4")).ignoreMigrationPatterns("*:pending").load();
            f.baseline();
            equal(f.info().applied().length, 2);
            f.clean();
            equal(one("SELECT count(*) FROM pg_namespace WHERE nspname IN ('one', 'two')"), "0");
        });
        step("a changed file is found", () -> {
            write("V2__second.sql", "SELECT 1;\n");
            equal(flyway().validateWithResult().validationSuccessful, false);
        });
        step("flyway cleans", () -> {
            flyway().clean();
            equal(one("SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"), "0");
            equal(one("SELECT count(*) FROM pg_type WHERE typname = 'kind'"), "0");
        });
        step("liquibase updates", () -> {
            write("lb/changes.xml", changes(first));
            try (Liquibase l = liquibase()) { l.update(new Contexts()); }
            equal(one("SELECT nextval('numbers')"), "5");
            equal(one("SELECT count(*) FROM databasechangelog"), "1");
        });
        step("liquibase updates again", () -> {
            write("lb/changes.xml", changes(first + second));
            try (Liquibase l = liquibase()) {
                equal(l.listUnrunChangeSets(new Contexts(), new LabelExpression()).size(), 2);
                l.update(new Contexts());
                l.tag("done");
            }
            equal(one("SELECT string_agg(exectype, ',' ORDER BY orderexecuted) FROM databasechangelog"), "EXECUTED,EXECUTED,EXECUTED");
            equal(one("SELECT pg_typeof(pages) FROM book RIGHT JOIN (SELECT 1) o ON true"), "bigint");
        });
        step("liquibase takes a snapshot", () -> {
            try (Liquibase l = liquibase()) {
                Database d = l.getDatabase();
                DatabaseSnapshot s = SnapshotGeneratorFactory.getInstance().createSnapshot(d.getDefaultSchema(), d, new SnapshotControl(d));
                equal(s.get(Table.class).stream().map(Table::getName).sorted().collect(Collectors.toList()), List.of("book", "databasechangelog", "databasechangeloglock", "writer"));
                Table book = s.get(Table.class).stream().filter(t -> t.getName().equals("book")).findFirst().get();
                equal(book.getColumns().stream().map(c -> c.getName() + " " + c.getType() + " " + c.isNullable()).collect(Collectors.toList()),
                    List.of("id uuid false", "author_id int8 true", "title text false", "price numeric(9, 2) true", "number int4 true", "cover oid true", "x float8 true", "pages int8 false"));
                equal(book.getOutgoingForeignKeys().get(0).getDeleteRule().toString(), "importedKeyCascade");
                equal(book.getUniqueConstraints().get(0).getName(), "one_title");
                equal(s.get(View.class).size() + s.get(Sequence.class).stream().filter(q -> q.getName().equals("numbers")).count(), 2L);
                equal(s.get(liquibase.structure.core.Index.class).stream().map(i -> i.getName()).sorted().collect(Collectors.toList()).contains("by_title"), true);
                Table writer = s.get(Table.class).stream().filter(t -> t.getName().equals("writer")).findFirst().get();
                equal(List.of(writer.getRemarks(), writer.getColumn("name").getRemarks(), writer.getColumn("name").getType().toString(), writer.getColumn("id").isAutoIncrement()),
                    List.of("who writes", "in full", "varchar(40 BYTE)", true));
            }
        });
        step("liquibase rolls back and forth", () -> {
            try (Liquibase l = liquibase()) {
                l.rollback(2, new Contexts(), new LabelExpression());
                equal(one("SELECT count(*) FROM author"), "1");
                l.updateTestingRollback("");
                l.clearCheckSums();
                l.validate();
            }
        });
        step("liquibase drops all", () -> {
            try (Liquibase l = liquibase()) { l.dropAll(); }
            equal(one("SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relname NOT LIKE 'databasechange%'"), "0");
        });
        System.exit(failed ? 1 : 0);
    }
}
