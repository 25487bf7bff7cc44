import java.io.ByteArrayInputStream;
import java.net.URI;
import java.net.URL;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublisher;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.Arrays;
import java.util.Base64;
import java.util.Random;
import javax.net.ssl.HttpsURLConnection;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLHandshakeException;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.TrustManagerFactory;

/** Java's HTTP clients over TLS: PORT NAME PASSWORD CA. What is not as it should be ends it with an exception. */
public final class Client {
    private static String server;
    private static String login;

    private static void check(boolean isRight, Object reason) {
        if (!isRight) throw new AssertionError(reason);
    }

    private static SSLContext trusting(Path certificate) throws Exception {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        try (var bytes = Files.newInputStream(certificate)) {
            store.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(bytes));
        }
        var trusted = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trusted.init(store);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, trusted.getTrustManagers(), null);
        return context;
    }

    private static HttpResponse<byte[]> send(HttpClient client, String method, String path, BodyPublisher body)
            throws Exception {
        var request = HttpRequest.newBuilder(URI.create(server + path)).header("Authorization", login);
        return client.send(request.method(method, body).build(), BodyHandlers.ofByteArray());
    }

    private static void goThrough(SSLContext context, String version) throws Exception {
        SSLParameters parameters = new SSLParameters();
        parameters.setProtocols(new String[] {version});
        var client = HttpClient.newBuilder().sslContext(context).sslParameters(parameters).build();
        byte[] bytes = new byte[3_000_000];
        new Random(7).nextBytes(bytes);
        BodyPublisher[] bodies = {
            BodyPublishers.ofByteArray(bytes),
            // Of unknown length, so that it is sent in chunks.
            BodyPublishers.ofInputStream(() -> new ByteArrayInputStream(bytes)),
        };
        for (BodyPublisher body : bodies) {
            var stored = send(client, "PUT", "/files/java", body);
            check(stored.statusCode() == 201, stored);
            check(stored.version() == HttpClient.Version.HTTP_1_1, stored.version());
            check(stored.sslSession().get().getProtocol().equals(version), version);
            var got = send(client, "GET", "/files/java", BodyPublishers.noBody());
            check(got.statusCode() == 200 && Arrays.equals(got.body(), bytes), got);
            check(send(client, "DELETE", "/files/java", BodyPublishers.noBody()).statusCode() == 204, version);
        }
    }

    public static void main(String[] args) throws Exception {
        server = "https://127.0.0.1:" + args[0];
        login = "Basic " + Base64.getEncoder().encodeToString((args[1] + ":" + args[2]).getBytes());
        SSLContext context = trusting(Path.of(args[3]));
        for (String version : new String[] {"TLSv1.2", "TLSv1.3"}) goThrough(context, version);
        var old = (HttpsURLConnection) new URL(server + "/healthz").openConnection();
        old.setSSLSocketFactory(context.getSocketFactory());
        check(new String(old.getInputStream().readAllBytes()).equals("ok\n"), "HttpsURLConnection");
        try {
            send(HttpClient.newHttpClient(), "GET", "/healthz", BodyPublishers.noBody());
            throw new AssertionError("an unknown authority is not refused");
        } catch (SSLHandshakeException refused) {
            check(refused.getMessage().contains("PKIX"), refused);
        }
        System.out.println("done");
    }
}
