module.exports = ({ env }) => ({
  host: "127.0.0.1",
  port: env.int("PORT"),
  url: env("SITE_URL"),
  app: { keys: ["for a project on loopback", "that lives as long as one test"] },
});
