// The tests of the page, in a real browser. CHROMIUM may name one; otherwise Playwright's own is used.
import { defineConfig } from "@playwright/test";

const executablePath = process.env.CHROMIUM;

export default defineConfig({
  testDir: "tests",
  timeout: 60_000,
  // Other tests run beside these in CI, and a test that passes the second time is reported as flaky.
  retries: process.env.CI ? 1 : 0,
  expect: { timeout: 20_000 },
  workers: 1,
  reporter: [["line"]],
  use: {
    viewport: { width: 1280, height: 900 },
    launchOptions: { ...(executablePath ? { executablePath } : {}), args: ["--no-sandbox"] },
  },
});
