module.exports = require("@strapi/strapi").factories.createCoreService("api::product.product");
