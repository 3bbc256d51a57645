import { render } from "preact";
import "./style.css";
import { Root } from "./view/Root";

const place = document.getElementById("app");
if (place) render(<Root />, place);
