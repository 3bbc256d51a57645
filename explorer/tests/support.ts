import { expect, type Page } from "@playwright/test";

/** The page as it is committed, opened from disk, or as a server serves it. */
export const PAGE = process.env.EXPLORER_PAGE ?? new URL("../../crates/terrane-cli/page/explorer.html", import.meta.url).href;

/** A setup that is simulated in milliseconds. */
export const SMALL = "records=100k&time=10min&budget=20MB/s";

/** Opens the page, and fails on any error in it. Returns once everything is simulated. */
export async function open(page: Page, hash: string): Promise<void> {
  page.on("pageerror", (error) => { throw error; });
  page.on("console", (message) => {
    if (message.type() === "error") throw new Error(message.text());
  });
  await page.goto(`${PAGE}#${hash}`);
  await expect(page.getByText("simulating …")).toHaveCount(0);
}

/** Returns the time of the clock in seconds. */
export async function time(page: Page): Promise<number> {
  return Number(await page.getByRole("slider", { name: "time" }).inputValue());
}
