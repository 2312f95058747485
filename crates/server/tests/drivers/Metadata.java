import java.sql.*;
import java.util.*;

/** pgjdbc: DatabaseMetaData as DBeaver and DataGrip ask for it, and values through prepared statements. */
public class Metadata {
    static List<String> all(ResultSet rows, String... columns) throws SQLException {
        List<String> found = new ArrayList<>();
        while (rows.next()) {
            StringBuilder row = new StringBuilder();
            for (String column : columns) {
                row.append(row.length() == 0 ? "" : "|").append(rows.getString(column));
            }
            found.add(row.toString());
        }
        rows.close();
        return found;
    }

    static void same(Object found, Object wanted) {
        if (!wanted.equals(found)) {
            throw new AssertionError("found " + found + ", wanted " + wanted);
        }
    }

    public static void main(String[] args) throws Exception {
        Connection c = DriverManager.getConnection("jdbc:postgresql://127.0.0.1:" + args[0] + "/atoll", "ann", "");
        Statement s = c.createStatement();
        s.execute("CREATE TABLE j (a INT PRIMARY KEY, b TEXT NOT NULL, c DECIMAL(10,2), d TIMESTAMP, UNIQUE (b, c))");
        s.execute("CREATE VIEW jv AS SELECT a FROM j");
        DatabaseMetaData m = c.getMetaData();
        same(m.getDatabaseProductName(), "PostgreSQL");
        same(all(m.getTables(null, "public", "j%", new String[] {"TABLE", "VIEW"}), "TABLE_NAME", "TABLE_TYPE"),
            List.of("j|TABLE", "jv|VIEW"));
        same(all(m.getColumns(null, "public", "j", "%"), "COLUMN_NAME", "TYPE_NAME", "IS_NULLABLE", "COLUMN_SIZE"),
            List.of("a|int4|NO|10", "b|text|NO|2147483647", "c|numeric|YES|10", "d|timestamp|YES|29"));
        same(all(m.getPrimaryKeys(null, "public", "j"), "COLUMN_NAME", "KEY_SEQ", "PK_NAME"), List.of("a|1|j_pkey"));
        same(all(m.getIndexInfo(null, "public", "j", true, false), "INDEX_NAME", "ORDINAL_POSITION", "COLUMN_NAME"),
            List.of("j_b_c_key|1|b", "j_b_c_key|2|c", "j_pkey|1|a"));
        same(all(m.getBestRowIdentifier(null, "public", "j", 1, true), "COLUMN_NAME"), List.of("a"));
        same(all(m.getImportedKeys(null, "public", "j"), "FKCOLUMN_NAME"), List.of());
        same(all(m.getExportedKeys(null, "public", "j"), "FKCOLUMN_NAME"), List.of());
        if (!all(m.getSchemas(), "TABLE_SCHEM").contains("public")) {
            throw new AssertionError("there is no schema public");
        }
        same(all(m.getCatalogs(), "TABLE_CAT"), List.of("atoll"));
        if (!all(m.getTypeInfo(), "TYPE_NAME").contains("int4")) {
            throw new AssertionError("there is no type int4");
        }
        all(m.getTablePrivileges(null, "public", "j"), "GRANTEE");
        all(m.getColumnPrivileges(null, "public", "j", "a"), "GRANTEE");
        all(m.getProcedures(null, null, "%"), "PROCEDURE_NAME");
        all(m.getFunctions(null, "public", "%"), "FUNCTION_NAME");
        all(m.getTableTypes(), "TABLE_TYPE");
        all(m.getUDTs(null, "public", "%", null), "TYPE_NAME");
        all(m.getClientInfoProperties(), "NAME");
        if (m.getSQLKeywords() == null || m.getMaxColumnNameLength() != 63) {
            throw new AssertionError("limits and keywords");
        }
        PreparedStatement p = c.prepareStatement("INSERT INTO j VALUES (?, ?, ?, ?)");
        for (int at = 0; at < 20; at++) {
            p.setInt(1, at);
            p.setString(2, "x" + at);
            p.setBigDecimal(3, new java.math.BigDecimal("1.50"));
            p.setTimestamp(4, Timestamp.valueOf("2024-02-29 01:02:03"));
            p.addBatch();
        }
        same(p.executeBatch().length, 20);
        PreparedStatement q = c.prepareStatement("SELECT a, b, c, d FROM j WHERE a = ?");
        // From the fifth time on the driver prepares on the server, and asks for binary values.
        for (int at = 0; at < 8; at++) {
            q.setInt(1, at);
            ResultSet row = q.executeQuery();
            row.next();
            same(row.getInt(1) + row.getString(2) + row.getBigDecimal(3) + row.getTimestamp(4),
                at + "x" + at + "1.50" + "2024-02-29 01:02:03.0");
        }
        ResultSetMetaData of = q.getMetaData();
        same(of.getColumnTypeName(3) + of.getPrecision(3) + "," + of.getScale(3), "numeric10,2");
        // The driver looks columns up by the table's number and theirs.
        same(of.getTableName(2) + "." + of.isAutoIncrement(2) + of.isNullable(2) + of.isNullable(3),
            "j.false" + ResultSetMetaData.columnNoNulls + ResultSetMetaData.columnNullable);
        ResultSetMetaData named = c.prepareStatement("SELECT b AS x, a + 1 AS y FROM j").getMetaData();
        same(((org.postgresql.PGResultSetMetaData) named).getBaseColumnName(1) + named.getTableName(2), "b");
        c.setAutoCommit(false);
        Statement cursor = c.createStatement();
        cursor.setFetchSize(7);
        same(all(cursor.executeQuery("SELECT a FROM j ORDER BY a"), "a").size(), 20);
        c.rollback();
        try {
            s.execute("SELECT nothing");
            throw new AssertionError("there is no such column");
        } catch (SQLException error) {
            same(error.getSQLState(), "42703");
        }
        c.close();
    }
}
