// Guided tours: each step has a picture, a question that hides the numbers, and an answer that is simulated.
import { expect, test } from "@playwright/test";
import { TOURS, nearest } from "../src/model/tours";
import { open } from "./support";

test("there are a dozen tours with different names", () => {
  expect(TOURS.length).toBeGreaterThanOrEqual(12);
  expect(new Set(TOURS.map((tour) => tour.name)).size).toBe(TOURS.length);
  for (const tour of TOURS) expect(tour.steps[0]?.hash).toBeTruthy();
});

for (const tour of TOURS) {
  test(`tour: ${tour.title}`, async ({ page }) => {
    await open(page, "design=balanced");
    await page.getByText("Guided tours").click();
    await page.getByRole("button", { name: tour.title }).click();
    const panel = page.locator(".tour");
    for (const [number, step] of tour.steps.entries()) {
      await expect(panel).toContainText(`${number + 1} of ${tour.steps.length}`);
      await expect(page.getByText("simulating …")).toHaveCount(0, { timeout: 40_000 });
      await expect(page.getByRole("alert")).toHaveCount(0);
      if (step.ask) {
        await expect(page.getByRole("heading", { name: "Results" })).toHaveCount(0);
        await panel.getByRole("radio").first().check();
        await panel.getByRole("button", { name: "Show" }).click();
        await expect(panel.getByRole("status")).toContainText(/Right|nearest/);
      }
      await expect(page.getByRole("heading", { name: "Results" })).toBeVisible();
      if (step.says) {
        await expect(panel.locator(".says")).not.toContainText(/NaN|undefined|Infinity/);
        // For whoever reads the output of the tests.
        console.log(`${tour.name}.${number + 1}: ${await panel.locator(".says").textContent()}`);
      }
      if (number + 1 < tour.steps.length) await panel.getByRole("button", { name: "Next" }).click();
    }
    await expect(page).toHaveURL(new RegExp(`tour=${tour.name}\\.${tour.steps.length}`));
    await panel.getByRole("button", { name: "Leave the tour" }).click();
    await expect(panel).toHaveCount(0);
  });
}

test("the nearest choice is nearest by ratio", () => {
  const question = { text: "", choices: [1, 3, 9], unit: String, of: () => 0 };
  expect([nearest(question, 1.5), nearest(question, 2), nearest(question, 6), nearest(question, 1000)]).toEqual([0, 1, 2, 2]);
});
