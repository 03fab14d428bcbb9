// Driven through the admin's API: its pages need not be built.
const secret = "for a project on loopback that lives as long as one test";

module.exports = {
  serveAdminPanel: false,
  auth: { secret },
  apiToken: { salt: secret },
  transfer: { token: { salt: secret } },
  flags: { nps: false, promoteEE: false },
};
