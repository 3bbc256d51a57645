import { render } from "preact";
import "./style.css";
import { App } from "./view/App";

const place = document.getElementById("app");
if (place) render(<App />, place);
