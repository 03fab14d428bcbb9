module.exports = require("@strapi/strapi").factories.createCoreController("api::product.product");
